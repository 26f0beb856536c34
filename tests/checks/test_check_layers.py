"""scripts/check_layers itself: each rule finds its violation, and a lawful tree is clean."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "check_layers")


def check(files):
    """Runs the script over a tree of {path: text}; returns (exit code, output)."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run(
            [sys.executable, SCRIPT, root], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def test_violations_are_found(self):
        rows = [
            ("src/core/base/a.h", '#include "core/model/job.h"\n'),
            ("src/core/model/a.h", '#include "core/store/store.h"\n'),
            ("src/core/store/a.cpp", '#include "core/vendor/vendor.h"\n'),
            ("src/core/vendor/a.cpp", '#include "core/store/store.h"\n'),
            ("src/core/engine/a.cpp", '#include "core/ops/ops.h"\n'),
            ("src/core/engine/a.cpp", '#include "core/net/curl_transport.h"\n'),
            ("src/cli/a.cpp", '#include "core/net/curl_transport.h"\n'),
            ("src/sim/a.cpp", '#include "core/model/job.h"\n'),
            ("src/cli/a.cpp", '#include "sim/rules.h"\n'),
            ("src/core/store/writer.cpp", "#include <SQLiteCpp/SQLiteCpp.h>\n"),
            ("src/core/engine/a.cpp", "#include <sqlite3.h>\n"),
            ("src/daemon/a.cpp", "#include <curl/curl.h>\n"),
            ("src/core/ops/a.cpp", "#include <CLI/CLI.hpp>\n"),
            ("src/core/store/store.h", "#include <nlohmann/json.hpp>\n"),
            ("src/core/engine/a.cpp", 'void f() { std::cout << "x"; }\n'),
            ("src/core/engine/a.cpp", "void f() { std::this_thread::sleep_for(x); }\n"),
            ("src/core/store/a.cpp", "auto t = std::chrono::steady_clock::now();\n"),
            ("src/core/ops/a.cpp", "void f() { std::exit(1); exit(1); }\n"),
            ("src/other/a.cpp", "int x;\n"),
        ]
        for path, text in rows:
            with self.subTest(path=path, text=text.strip()):
                code, out = check({path: text})
                self.assertEqual(code, 1)
                self.assertIn(f"{path}:1:", out)

    def test_lawful_tree_is_clean(self):
        code, out = check(
            {
                "src/core/base/clock.cpp": "auto t = std::chrono::steady_clock::now();\n",
                "src/core/store/sqlite_jobs.cpp": "#include <SQLiteCpp/SQLiteCpp.h>\n"
                '#include "core/model/job.h"\n#include "core/base/clock.h"\n',
                "src/core/net/transfer.cpp": "#include <curl/curl.h>\n",
                "src/core/engine/a.cpp": '#include "core/net/transport.h"\n',
                "src/core/vendor/openai.cpp": '#include "core/config/config.h"\n',
                "src/core/engine/b.cpp": '// std::cout is not used here\nauto s = "exit(1)";\n',
                "src/daemon/main.cpp": '#include <CLI/CLI.hpp>\n#include "core/net/curl_transport.h"\n',
                "src/sim/main.cpp": '#include "core/base/log.h"\n#include "sim/rules.h"\n',
            }
        )
        self.assertEqual((code, out), (0, ""))

    def test_empty_tree_is_a_failure(self):
        code, _ = check({})
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
