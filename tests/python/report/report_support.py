"""What the tests of reports share: packings to report, and a reader of their pages."""

import random
from html.parser import HTMLParser

from budgeteer import Chunk, Packer

HOSTILE = (
    "<script>document.title='hacked'</script> tea",
    "</pre></td></tr></table><style>body{display:none}</style> tea",
    '"><img src=x onerror="document.title=\'hacked\'"> tea',
    "tea \x00\x01\x08\x0b\x1b[31m\x7f\x85\u202e\u2066\ufeff\ufffe\ud800 end",
    "<!-- tea -->]]> &amp; &#60;script&#62; {{ tea }} %s \\u003c",
)
"""Texts that try to be more than text."""

WORDS = ("green", "black", "tea", "bread", "rye", "leaf", "water", "cup", "market", "policy")


def hostile():
    """Return a packing of the hostile texts: some are kept, one is cut, the others are dropped."""
    chunks = [
        Chunk(text, id=f"<b>{i}</b>", source=f"{text}.md", title=text)
        for i, text in enumerate(HOSTILE)
    ]
    packer = Packer(60, overflow="truncate_end")
    return packer.pack("<script>tea</script>", [*chunks, *chunks[:1], ""])


def handbook(count=5, budget=40, **options):
    """Return a packing of *count* chunks of sentences, of which the last repeats the best."""
    chooser = random.Random(count)
    chunks = [
        Chunk(
            " ".join(chooser.choices(WORDS, k=chooser.randint(8, 90))).capitalize() + ".",
            id=str(i),
            source=f"page-{i % 7}.md",
            title=f"Section {i}",
        )
        for i in range(count - 1)
    ]
    best = Packer(10**6, max_chunks=1).pack("green tea policy", chunks).kept[0].chunk
    chunks.append(Chunk(best.text, id="again", source="copy.md"))
    return Packer(budget, **options).pack("green tea policy", chunks)


VOID = {"meta", "img", "br", "input", "rect", "line", "path", "circle"}


class Page(HTMLParser):
    """A page as a browser reads it: its elements, and the text within them."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.open = []
        self.texts = {}
        self.feed(text)
        self.close()
        assert [] == self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert tag == self.open.pop()[0], tag

    def handle_data(self, data):
        for _, attributes in self.open:
            if "id" in attributes:
                name = attributes["id"]
                self.texts[name] = self.texts.get(name, "") + data

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
