"""The data of a campaign in five rooms: records, jobs, places, the store, and exports."""
