"""`lxml.html` in plain Python: pages are read by html5lib, as browsers read them, and searched by elementpath.

Elements can be read and searched; changing and writing them needs lxml itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import elementpath
import html5lib
import lxml.etree


WHY = "lxml is compiled, and what takes its place only reads and searches pages"


class _Attributes(dict[str, str]):
    """The attributes of an element."""

    def _no(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"attributes of an element cannot be changed inside of a plugin: {WHY}")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _no  # type: ignore[assignment]


class HtmlElement:
    """An element of a page."""

    def __init__(self, element: Any, page: Any) -> None:
        self._element, self._page = element, page
        self.tag, self.text, self.tail = element.tag, element.text, element.tail
        self.attrib = _Attributes(element.attrib)
        self._read = True

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.attrib.get(name, default)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_read" in self.__dict__:
            raise AttributeError(f"`{name}` of an element cannot be changed inside of a plugin: {WHY}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"`HtmlElement.{name}` does not exist inside of a plugin: {WHY}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HtmlElement) and self._element is other._element

    def __hash__(self) -> int:
        return id(self._element)

    def keys(self) -> list[str]:
        return list(self.attrib)

    def items(self) -> list[tuple[str, str]]:
        return list(self.attrib.items())

    def __iter__(self) -> Iterator[HtmlElement]:
        return (HtmlElement(one, self._page) for one in self._element)

    def __len__(self) -> int:
        return len(self._element)

    def __getitem__(self, at: int) -> HtmlElement:
        return HtmlElement(self._element[at], self._page)

    def iter(self, tag: str | None = None) -> Iterator[HtmlElement]:
        return (HtmlElement(one, self._page) for one in self._element.iter(tag) if isinstance(one.tag, str))

    def itertext(self) -> Iterator[str]:
        return self._element.itertext()  # type: ignore[no-any-return]

    def text_content(self) -> str:
        return "".join(self.itertext())

    def find(self, path: str) -> HtmlElement | None:
        found = self._element.find(path)
        return None if found is None else HtmlElement(found, self._page)

    def findall(self, path: str) -> list[HtmlElement]:
        return [HtmlElement(one, self._page) for one in self._element.findall(path)]

    def findtext(self, path: str, default: str | None = None) -> str | None:
        return self._element.findtext(path, default)  # type: ignore[no-any-return]

    def xpath(self, path: str, **variables: Any) -> Any:
        """Returns elements and texts, or the number, text or truth that an expression of XPath 1.0 has."""
        try:
            found = elementpath.select(self._page, path, parser=elementpath.XPath1Parser, item=self._element, variables=variables or None)
        except elementpath.ElementPathError as problem:
            raise lxml.etree.XPathEvalError(str(problem)) from None
        if not isinstance(found, list):
            # XPath 1.0 knows one kind of number.
            return float(found) if isinstance(found, int) and not isinstance(found, bool) else found
        return [HtmlElement(one, self._page) if isinstance(one, ElementTree.Element) else one for one in found]


def document_fromstring(html: str | bytes, parser: Any = None, **kwargs: Any) -> HtmlElement:
    """Reads a page, and returns its element `html`."""
    if not html.strip():
        raise lxml.etree.ParserError("Document is empty")
    page = html5lib.parse(html, treebuilder="etree", namespaceHTMLElements=False)
    return HtmlElement(page, page)


def fromstring(html: str | bytes, base_url: str | None = None, parser: Any = None, **kwargs: Any) -> HtmlElement:
    """Reads a page. Of a part of a page, returns its element, or a `div` with what it consists of."""
    document = document_fromstring(html)
    start = (html if isinstance(html, str) else html.decode("latin-1")).lstrip()[:5].lower()
    if start.startswith(("<html", "<!doc")):
        return document
    page = document._element
    body = page.find("body")
    if len(page.find("head")) or body is None:
        return document
    if len(body) == 1 and not (body.text or "").strip() and not (body[0].tail or "").strip():
        return HtmlElement(body[0], page)
    body.tag = "div"
    return HtmlElement(body, page)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"`lxml.html.{name}` does not exist inside of a plugin: {WHY}")
