"""The read path: query -> legs -> fusion -> decay -> hits, each stage pure but for the legs.

``pipeline`` reads top to bottom as the life of a query.
"""
