"""A node as one small file, its card: figures, matrix and places, without the names of anything.

`card` has the type, `of_campaign` and `of_matrix` make one, `hashing` and `signing` show that it is as it was made,
`compare` holds it against the published machines of the `reference`, and `atlas` makes a site of many.
"""
