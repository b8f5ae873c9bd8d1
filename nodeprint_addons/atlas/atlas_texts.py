"""The sentences of this add-on, which are in texts.yaml."""

from nodeprint.settings import texts

say = texts.of_addon(__file__)
