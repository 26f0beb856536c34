#!/usr/bin/env python3
"""No floating point on any money path: neither its types nor what reads or binds it."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Globs of the sources that see amounts, prices or units.
PATHS = [
    "src/core/base/money.*",
    "src/core/model/ledger.*",
    "src/core/model/period.*",
    "src/core/model/price*.*",
    "src/core/money/*",
    "src/core/store/cost_*.h",
    "src/core/store/price_book.h",
    "src/core/store/sqlite_ledger*",
    "src/core/store/sqlite_prices*",
    "src/core/store/sqlite_audit*",
    "src/core/store/sqlite_invoices*",
    "src/core/store/sqlite_pico*",
    "src/core/store/audit/*.sql",
    "src/core/ops/money_*",
    "src/core/ops/ops_aggregate.cpp",
    "src/core/ops/ops_audit*.cpp",
    "src/core/ops/ops_cost*.cpp",
    "src/core/ops/ops_import*.cpp",
    "src/core/ops/ops_invoice*.cpp",
    "src/core/ops/ops_price*.cpp",
    "src/core/ops/ops_repair*.cpp",
    "src/core/ops/ops_usage*.cpp",
    "src/cli/cmd_cost*.cpp",
    "src/cli/cmd_price*.cpp",
    "src/cli/cmd_invoice*.cpp",
    "src/core/store/invoice_book.h",
    "src/cli/cmd_usage*.cpp",
]
FORBIDDEN = re.compile(
    r"\b(float|double|REAL|sto[dfl]d?|strto[dfl]d?|atof|sqlite3_(?:column|value|result|bind)_double"
    r"|get<double>|is_number_float|total\s*\(|avg\s*\(|llround|lround)\b"
)
# A bare sum of amounts raises beyond 64 bits; a product of columns turns into floating point.
BARE_SUM = re.compile(r"\bsum\s*\(\s*(?:\w+\.)?amount_pico\s*\)", re.IGNORECASE)
PRODUCT = re.compile(r"\bunits\s*\*\s*(?:\w+\.)?unit_pico|unit_pico\s*\*\s*(?:\w+\.)?units", re.IGNORECASE)


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    return re.sub(r"(//|--).*", "", text)


def findings(path, text):
    out = []
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        for pattern in (FORBIDDEN, BARE_SUM, PRODUCT):
            found = pattern.search(line)
            if found:
                out.append(f"{path}:{number}: {found.group()}")
    return out


def check_itself():
    bad = ["double x;", "std::stod(text)", "SELECT SUM(l.amount_pico)", "units * unit_pico", "float f"]
    good = ["// a double posting", "sum(amount_pico / 1000000000)", "redouble(x)", "rate(units, unit_pico)"]
    assert all(findings("x", line) for line in bad), "a forbidden line was not found"
    assert not any(findings("x", line) for line in good), "a good line was found"


def main():
    check_itself()
    files = [f for pattern in PATHS for f in glob.glob(os.path.join(ROOT, pattern))]
    if len(files) < 20:
        sys.exit(f"only {len(files)} files of money found: are the paths still right?")
    out = []
    for path in sorted(files):
        with open(path, encoding="utf-8") as file:
            out += findings(os.path.relpath(path, ROOT), file.read())
    if out:
        sys.exit("\n".join(out))
    print(f"ok: {len(files)} files")


if __name__ == "__main__":
    main()
