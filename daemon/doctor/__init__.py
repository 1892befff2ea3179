"""What a user could get wrong, each with its fix: facts are gathered, then judged by pure functions.

One file an area: its facts, how they are gathered, what is made of them. ``examination`` puts them in order.
"""
