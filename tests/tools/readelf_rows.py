# SPDX-License-Identifier: Apache-2.0
"""What readelf --debug-dump=frames-interp says of a file's code."""
import re


def readelf_rows(lines):
    """(address, {column: word}, is there a word for each column?) of each row of code."""
    columns, body = [], None
    for line in lines:
        words = line.split()
        if " FDE " in line or " CIE " in line:
            body = re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            body = (int(body[1], 16), int(body[2], 16)) if body else None
        elif words[:2] == ["LOC", "CFA"]:
            columns = words
        elif body and re.match(r"[0-9a-f]{16} ", line) and body[0] <= int(words[0], 16) < body[1]:
            yield int(words[0], 16), dict(zip(columns, words)), len(words) == len(columns)
