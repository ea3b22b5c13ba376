"""Contexts as rlmd takes them: texts, paths, revisions of git; others become one of these."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, cast

from ._server import Server

TEXT_MAX = 1 << 20  # characters of a text in the message itself; longer ones are blobs


class Git:
    """A revision, or a path in it, of the repository of the current directory: Git("HEAD~3:src")."""

    def __init__(self, revision: str):
        self.revision = revision

    def __repr__(self) -> str:
        return f"Git({self.revision!r})"


class Contexts:
    """The parameter "contexts" of a job or session; what was sent for it is freed by close()."""

    def __init__(self, server: Server, context: Any, named: Optional[Mapping[str, Any]] = None):
        self._server = server
        self._blobs: List[str] = []
        given = {} if named is None else dict(named)
        several = len(given) + (context is not None) > 1
        self.params: List[Dict[str, str]] = []
        if context is not None:
            self.params.append(self._read(context, "context" if several else None))
        for name, value in given.items():
            self.params.append(self._read(value, name))

    def close(self) -> None:
        for blob in self._blobs:
            if self._server.alive:
                self._server.begin("blob.free", blob=blob)
        self._blobs = []

    def _read(self, value: Any, name: Optional[str]) -> Dict[str, str]:
        source = self._source(value)
        if name is not None and not ("path" in source and name == "context"):
            source["name"] = name
        return source

    def _source(self, value: Any) -> Dict[str, str]:
        if isinstance(value, Git):
            return {"git": value.revision}
        if isinstance(value, os.PathLike):
            return {"path": os.fspath(cast("os.PathLike[str]", value))}
        text = text_of(value)
        if isinstance(text, str) and len(text) <= TEXT_MAX:
            return {"text": text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")}
        data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        self._blobs.append(self._server.blob(data))
        return {"blob": self._blobs[-1]}


def text_of(value: Any) -> "str | bytes":
    """A str, bytes, an open file, a table, or what JSON can say."""
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(cast(bytearray, value))
    if hasattr(value, "read"):
        return text_of(value.read())
    if hasattr(value, "to_csv"):  # pandas
        return text_of(value.to_csv(index=False))
    if hasattr(value, "to_pylist"):  # Arrow
        value = value.to_pylist()
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except (TypeError, ValueError) as error:
        raise TypeError(f"a context is a str, bytes, Path, Git, file, table or JSON: {error}") from None
