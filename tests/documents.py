"""The elements and texts of HTML."""

from html.parser import HTMLParser

VOID = {"br", "img", "meta"}


class Document(HTMLParser):
    """A page, or a part of one; every element must be closed in the right order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name):
        """The attributes of all elements of a name."""
        return [attributes for tag, attributes in self.found if tag == name]
