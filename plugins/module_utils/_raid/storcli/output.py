# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what storcli and its relatives print to plain data, one shape for JSON and for plain text.

All four tools (storcli, perccli, storcli2, perccli2) answer with one block per controller: a command status and response
data. JSON is ``{"Controllers": [{"Command Status": {…}, "Response Data": {…}}]}``, minified, indented by tabs or with
CRLF, sometimes with raw control bytes in strings. Old builds, EFI builds and every syntax error answer in plain text
although ``J`` was given: ``Label = value`` lines, headings underlined with ``=`` and tables between dashes.

Nothing in here raises, whatever the text is; of a JSON document that is cut or broken, as much is read as is there.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?=[ \t\r\n,\]}])"
    r"|(?P<word>true|false|null)(?=[ \t\r\n,\]}])|(?P<mark>[{}\[\],:]))",
    re.DOTALL,
)
_CONSTANTS = {"true": True, "false": False, "null": None}


def salvage(text: str, position: int, mapping: t.Callable[[], dict[str, t.Any]] = dict) -> tuple[t.Any, int]:
    """As much of a JSON document as is there before it is cut or broken, and where that is.

    :param mapping: what an object becomes.
    """
    root: t.Any = None
    stack: list[t.Any] = []
    keys: list[t.Any] = []
    expected = "value"
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            return root, position + len(text[position:]) - len(text[position:].lstrip())
        mark = token["mark"]
        if mark in ("}", "]"):
            closes = bool(stack) and isinstance(stack[-1], dict if mark == "}" else list)
            if not closes or expected not in ("comma", "key or end", "value or end"):
                return root, token.start("mark")
            stack.pop()
            keys.pop()
            position = token.end()
            expected = "comma"
            if not stack:
                return root, position
            continue
        if mark == ",":
            if expected != "comma" or not stack:
                return root, token.start("mark")
            expected = "key" if isinstance(stack[-1], dict) else "value"
        elif mark == ":":
            if expected != "colon":
                return root, token.start("mark")
            expected = "value"
        elif expected in ("key", "key or end"):
            key = _string(token["string"])
            if key is None:
                return root, token.end()
            keys[-1] = key
            expected = "colon"
        elif expected in ("value", "value or end"):
            value = mapping() if mark == "{" else [] if mark == "[" else _plain_token(token)
            if value is _BROKEN:
                return root, token.end()
            if not stack:
                root = value
            elif isinstance(stack[-1], dict):
                stack[-1][keys[-1]] = value
            else:
                stack[-1].append(value)
            expected = "comma"
            if mark:
                stack.append(value)
                keys.append(None)
                expected = "key or end" if mark == "{" else "value or end"
            elif not stack:
                return root, token.end()
        else:
            return root, token.end()
        position = token.end()


class _Broken:
    """Stands for a token that has no value."""


_BROKEN = _Broken()


def _plain_token(token: t.Match[str]) -> t.Any:
    if token["string"] is not None:
        value = _string(token["string"])
        return _BROKEN if value is None else value
    if token["word"] is not None:
        return _CONSTANTS[token["word"]]
    try:
        return json.loads(token["number"])
    except ValueError:
        return _BROKEN


def _string(token: t.Optional[str]) -> t.Optional[str]:
    if token is None:
        return None
    try:
        value = json.loads(token, strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


Data = t.Mapping[str, t.Any]

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_OF_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_HELP = re.compile(r"^[ \t]*(?:Storage Command Line Tool\b|(?:stor|perc)cli\S*\s+(?:/c|show|help|-h|-v))", re.MULTILINE | re.IGNORECASE)
#: Some builds print it without a command status, and the help after it.
_SYNTAX_ERROR = re.compile(r"^[ \t]*syntax error\b.*$", re.MULTILINE | re.IGNORECASE)
#: A refusal, also beside a status with ``Success``, and as a line without any status.
_UNSUPPORTED = re.compile(r"\b(?:not supported|un-?supported)\b", re.IGNORECASE)
#: Printed before or after the answer proper.
_NOTICE = re.compile(r"^(?:Generating detailed summary of the adapter|Expander may|WARNING\b|NOTE\b)", re.IGNORECASE)
_PROMPT = re.compile(r"^\S.*[>#$]\s*\S*(?:stor|perc)cli", re.IGNORECASE)

_EQUALS = re.compile(r"\s=(?=\s|$)")
_UNDERLINE = re.compile(r"^={2,}\s*$")
_DASHES = re.compile(r"^-{5,}\s*$")
_STATUS_LABELS = ("CLI Version", "Operating system", "Controller", "Status", "Description", "Status Code")


class Labelled(dict):  # type: ignore[type-arg]
    """Values by label, whatever the letter case and the blanks of the label: both differ between versions of the tools."""

    def __missing__(self, label: t.Any) -> t.Any:
        wanted = folded(label)
        for known, value in self.items():
            if folded(known) == wanted:
                return value
        raise KeyError(label)

    def __contains__(self, label: t.Any) -> bool:
        return dict.__contains__(self, label) or self.get(label, self) is not self

    def get(self, label: t.Any, default: t.Any = None) -> t.Any:
        try:
            return self[label]
        except KeyError:
            return default


def folded(label: t.Any) -> str:
    """A label without what differs between versions of the tools."""
    return "".join(str(label).lower().split())


@frozen
class Reply:
    """The tool's output about one controller (or, in an overview, about the host)."""

    status: Data = field(default_factory=dict)
    data: Data = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return word(self.status.get("Status")).lower() == "success"

    @property
    def description(self) -> str:
        """The tool's own sentence about the whole; empty if it gave none."""
        raw = word(self.status.get("Description"))
        return "" if raw.lower() in ("none", "-") else raw

    @property
    def details(self) -> t.Sequence[Data]:
        """One row per object and property that a command touched."""
        return rows(self.status.get("Detailed Status"))

    @property
    def reasons(self) -> t.Sequence[str]:
        """Why the command failed, most specific first, without repetition."""
        found = [_message(row) for row in self.details if _has_failed(row)]
        if not self.succeeded or _UNSUPPORTED.search(self.description):
            found.append(self.description)
        return list(dict.fromkeys(reason for reason in found if reason and reason not in ("-", "None")))

    @property
    def refused(self) -> bool:
        """Whether any part of the command failed: the status as a whole is sometimes ``Success`` all the same."""
        return not self.succeeded or bool(_UNSUPPORTED.search(self.description)) or any(_has_failed(row) for row in self.details)


@frozen
class Output:
    """One output of a tool: its answers, what was not understood, and whether it ends as it should."""

    text: str
    answers: t.Sequence[Reply] = ()
    not_understood: t.Sequence[str] = ()
    complete: bool = True

    @property
    def version(self) -> str:
        """The version of the tool, for example ``007.1616.0000.0000``; empty if it is not printed."""
        for answer in self.answers:
            found = word(answer.status.get("CLI Version")).partition(" ")[0]
            if found:
                return found
        return ""


def read_output(text: str) -> Output:
    """Any output of the tools as plain data."""
    text = _CONTROL.sub(" ", str(text).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff"))
    if not text.strip():
        return Output(text, (), ("the tool printed nothing",), False)
    start = _LINE_OF_OBJECT.search(text)
    if start:
        return _read_json(text, start.end() - 1)
    return _read_text(text)


def word(value: t.Any) -> str:
    """A printed value as a string without blanks around it; empty for what is no plain value."""
    if isinstance(value, bool) or value is None:
        return ""
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def rows(value: t.Any) -> t.Sequence[Data]:
    """The rows of a table; empty for what is none."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, (list, tuple)) else []


def section(value: t.Any) -> Data:
    """The properties of a section with blanks around labels removed; also from a table of Property and Value."""
    if isinstance(value, dict):
        return Labelled((str(label).strip(), entry) for label, entry in value.items())
    found = Labelled()
    for row in rows(value):
        label = word(row.get("Property")) or word(row.get("Ctrl_Prop")) or word(row.get("Prop"))
        if label and "Value" in row:
            found[label] = row["Value"]
    return found


def at_line(text: str, position: int) -> str:
    """A place in a text for messages: ``line 17: 'the line'``."""
    number = text.count("\n", 0, position) + 1
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)].strip()
    if len(line) > 120:
        around = max(position - start - 40, 0)
        line = text[start + around : start + around + 100].strip() + " …"
    return f"line {number}: {line!r}"


def _has_failed(row: Data) -> bool:
    """Whether a row of the detailed status is of something that was refused, by its status or by its message."""
    return word(row.get("Status")).lower() not in ("success", "") or bool(_UNSUPPORTED.search(_message(row)))


def _message(row: Data) -> str:
    return word(row.get("ErrMsg")) or word(row.get("Description"))


# JSON


def _read_json(text: str, start: int) -> Output:
    problems = [at_line(text, position) for position in _foreign_lines(text[:start])]
    complete = True
    try:
        document, end = json.JSONDecoder(object_pairs_hook=Labelled, strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        document, end = salvage(text, start, Labelled)
        complete = False
        problems.append(f"the JSON is cut or broken at {at_line(text, min(end, len(text.rstrip()) - 1))}")
    else:
        rest = text[end:]
        if rest.strip():
            complete = False
            problems.append(at_line(text, end + len(rest) - len(rest.lstrip())))
    answers = []
    blocks = document.get("Controllers") if isinstance(document, dict) else None
    if not isinstance(blocks, list):
        complete = False
        problems.append(f"there is no list of controllers in the JSON: {at_line(text, start)}")
        blocks = []
    for block in blocks:
        status = block.get("Command Status") if isinstance(block, dict) else None
        if not isinstance(status, dict):
            complete = False
            problems.append("an answer has no command status")
            continue
        data = block.get("Response Data")
        answers.append(Reply(section(status), section(data) if isinstance(data, dict) else {}))
    damaged = text.find("\ufffd")
    if damaged >= 0 and any(_damaged_labels(answer.data) or _damaged_labels(answer.status) for answer in answers):
        # Strings can hold strange bytes (serial numbers of drives do); labels cannot, and one that is lost could be any.
        complete = False
        problems.append(at_line(text, damaged))
    return Output(text, tuple(answers), tuple(dict.fromkeys(problems)), complete)


def _damaged_labels(value: t.Any) -> bool:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if any("\ufffd" in str(label) for label in one):
                return True
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
    return False


def _foreign_lines(text: str) -> t.Iterator[int]:
    """Positions of lines before an answer that neither the tool nor a shell printed."""
    position = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and not _NOTICE.match(line) and not _PROMPT.match(line):
            yield position
        position += len(line)


# Plain text


class _TextBlock:
    """One answer while its lines are read."""

    def __init__(self) -> None:
        self.status = Labelled()
        self.data = Labelled()
        self.section: t.Optional[str] = None

    @property
    def in_status(self) -> bool:
        return self.section is None and not self.data

    def put(self, label: str, value: str) -> None:
        if self.in_status and label in _STATUS_LABELS and label not in self.status:
            self.status[label] = value
        elif self.section is None:
            self.data[label] = value
        else:
            place = self.data.get(self.section)
            if not isinstance(place, dict):
                # Lines after a table belong to the answer as a whole: ``Virtual Drives = 2``.
                self.data.setdefault(label, value)
            else:
                place[label] = value

    def put_table(self, table: list[dict[str, str]]) -> None:
        if self.section == "Detailed Status":
            self.status["Detailed Status"] = table
        elif self.section is not None:
            self.data[self.section] = table

    def answer(self) -> Reply:
        return Reply(self.status, self.data)


def _read_text(text: str) -> Output:
    lines = text.split("\n")
    blocks: list[_TextBlock] = []
    problems: list[str] = []
    complete = text.endswith("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _begins_answer(line, following, blocks):
            blocks.append(_TextBlock())
        heading = _heading(line)
        if heading and _UNDERLINE.match(following) and blocks:
            block = blocks[-1]
            block.section = heading
            if block.section != "Detailed Status":
                block.data.setdefault(block.section, Labelled())
            number += 2
            continue
        if _DASHES.match(line) and blocks:
            started = number + 1
            table, closed, number = _read_table(lines, number)
            if not closed:
                complete = False
                problems.append(f"the table at line {started} is cut")
            if table is not None:
                blocks[-1].put_table(table)
            continue
        found = _property(line)
        if found and blocks:
            blocks[-1].put(*found)
        number += 1
    answers = tuple(block.answer() for block in blocks)
    if not any("Status" in answer.status for answer in answers):
        refusal = _SYNTAX_ERROR.search(text)
        if refusal:
            return Output(text, (Reply({"Status": "Failure", "Description": refusal.group().strip()}),))
        if _HELP.search(text):
            return Output(text)
        sentence = next((line.strip() for line in lines if _UNSUPPORTED.search(line)), None)
        if sentence is not None and not blocks:
            return Output(text, (Reply({"Status": "Failure", "Description": sentence}),))
        first = len(text) - len(text.lstrip())
        return Output(text, (), (*problems, at_line(text, first)), False)
    return Output(text, answers, tuple(problems), complete)


def _heading(line: str) -> str:
    """The name of a section, from ``Name :``; empty if the line is no such heading."""
    text = line.rstrip()
    return text[:-1].rstrip() if text.endswith(":") and not text[0].isspace() else ""


def _property(line: str) -> tuple[str, str] | None:
    """Label and value of ``Label = value``."""
    found = _EQUALS.search(line)
    label = line[: found.start()].strip() if found else ""
    return (label, line[found.end() :].strip()) if found and label else None


def _begins_answer(line: str, following: str, blocks: t.Sequence[_TextBlock]) -> bool:
    found = _property(line)
    if not found:
        return False
    label = found[0]
    if label == "CLI Version":
        return True
    begun = bool(blocks) and blocks[-1].in_status
    if label == "Controller":
        return following.lstrip().startswith("Status =") and not (begun and "Controller" not in blocks[-1].status)
    # Also where the line with its number is lost: what follows must not belong to the controller before it.
    return label == "Status" and (not blocks or (not blocks[-1].in_status and following.lstrip().startswith("Description =")))


def _read_table(lines: t.Sequence[str], number: int) -> tuple[t.Optional[list[dict[str, str]]], bool, int]:
    """A table: dashes, the header, dashes, rows, dashes. Also whether it is closed, and the number of the line after it."""
    header_at = number + 1
    if header_at + 1 >= len(lines) or not _DASHES.match(lines[header_at + 1]):
        # A line of dashes alone: the closing one is printed twice at times.
        return None, True, number + 1
    body: list[str] = []
    number = header_at + 2
    while number < len(lines) and not _DASHES.match(lines[number]) and lines[number].strip():
        body.append(lines[number])
        number += 1
    closed = number < len(lines) and bool(_DASHES.match(lines[number]))
    return table_rows(lines[header_at], body), closed, number + 1 if closed else number


def table_rows(header: str, body: t.Sequence[str]) -> list[dict[str, str]]:
    """The cells of a table whose columns are distinguished only by the position of their header.

    Values are aligned left or right and can contain blanks (sizes, models, names), so each group of characters belongs to
    the header it stands under. One that stands under none belongs to what follows it after one blank (``2.618 TiB`` under ``Size``), else to the
    column on its left.
    """
    columns = [(found.group(), found.start(), found.end()) for found in re.finditer(r"\S+", header)]
    table = []
    for line in body:
        cells = Labelled((name, "") for name, _start, _end in columns)
        words = list(re.finditer(r"\S+", line))
        for at, found in enumerate(words):
            name = _column(columns, found.start(), found.end())
            follows = at > 0 and found.start() - words[at - 1].end() == 1
            if name is None and not follows and at + 1 < len(words) and words[at + 1].start() - found.end() == 1:
                name = _column(columns, words[at + 1].start(), words[at + 1].end())
            name = name or _left(columns, found.start())
            if name is not None:
                cells[name] = f"{cells[name]} {found.group()}".strip()
        table.append(cells)
    return table


def _column(columns: t.Sequence[tuple[str, int, int]], start: int, end: int) -> t.Optional[str]:
    best: t.Optional[str] = None
    widest = 0
    for name, left, right in columns:
        overlap = min(end, right) - max(start, left)
        if overlap > widest:
            best, widest = name, overlap
    return best


def _left(columns: t.Sequence[tuple[str, int, int]], start: int) -> t.Optional[str]:
    before = [name for name, left, _right in columns if left <= start]
    return before[-1] if before else (columns[0][0] if columns else None)
