"""Dead letters: read, counted, replayed from two shells at once, discarded."""

import json
from concurrent.futures import ThreadPoolExecutor

import harness
from harness import GPT, Case, openai_error, rule, wait_until

REJECT = openai_error(400, code="invalid_value", message="no such thing")


class DeadLetters(Case):
    def dead(self, count, *args, rules=None, config=None):
        """A world with `count` dead letters; the vendor refuses what says `please fail`."""
        world = self.start(rules=rules or [rule(REJECT, prompt_contains="please fail")], config=config)
        ids = world.parallel(
            lambda i: world.submit(f"please fail {i}", *args)["job_id"], range(count))
        world.wait_final(ids)
        self.assertEqual(world.stats()["dlq_open"], count)
        return world, ids

    def letters(self, world, *args):
        return world.aiq("dlq", "list", "--json", "--limit", "0", *args, rc=0).lines

    def calls_of(self, world, job_id):
        return [c for c in world.sim.calls()
                if harness.header(c, "x-aiq-attempt").split(".")[0] == job_id]

    def test_a_hundred_replayed_from_two_shells_run_once_each(self):
        world, ids = self.dead(100)
        world.sim.rules([])
        before = len(world.sim.calls())
        reports = world.at_once(
            [lambda: world.aiq("dlq", "replay", "--all", "--json", rc=0).json] * 2)
        self.assertEqual(sum(r["replayed"] for r in reports), 100)
        replayed = [j["job_id"] for r in reports for j in r["jobs"] if j["outcome"] == "replayed"]
        self.assertEqual(sorted(replayed), sorted(ids))
        for report in reports:
            self.assertEqual(report["replayed"] + report["skipped"], len(report["jobs"]))
        for job_id in ids:
            job = world.wait_status(job_id, "completed")
            self.assertEqual(job["generation"], 2)
        self.assertEqual(len(world.sim.calls()) - before, 100)
        self.assertEqual(world.stats()["dlq_open"], 0)
        for letter in self.letters(world, "--state", "replayed"):
            self.assertTrue(letter["resolved_by"].startswith("uid:"))
        again = world.aiq("dlq", "replay", "--json", *[str(n) for n in range(1, 101)], rc=0).json
        self.assertEqual((again["replayed"], again["skipped"]), (0, 100))
        self.assertEqual(len(world.sim.calls()) - before, 100)

    def test_a_second_failure_has_the_history_of_both_generations(self):
        world, ids = self.dead(1, rules=[rule(openai_error(500), prompt_contains="please fail")],
                               config={"retry": {"base": "1ms", "max_attempts": 2}})
        first = self.letters(world)[0]
        self.assertEqual((first["reason"], first["generation"]), ("attempts_exhausted", 1))
        world.aiq("dlq", "replay", first["dlq_id"], "--note", "try again", rc=0)
        wait_until(lambda: world.stats()["dlq_open"] == 1 and
                   self.letters(world)[0]["dlq_id"] != first["dlq_id"], what="a second letter")
        second = self.letters(world)[0]
        self.assertEqual((second["job_id"], second["generation"]), (ids[0], 2))
        shown = world.aiq("dlq", "show", second["dlq_id"], "--json", rc=0).json
        self.assertEqual([(a["generation"], a["attempt"]) for a in shown["attempt_log"]],
                         [(1, 1), (1, 2), (2, 1), (2, 2)])
        old = world.aiq("dlq", "show", first["dlq_id"], "--json", rc=0).json
        self.assertEqual((old["state"], old["note"]), ("replayed", "try again"))
        self.assertEqual([(a["generation"], a["attempt"]) for a in old["attempt_log"]],
                         [(1, 1), (1, 2)])

    def test_a_letter_whose_key_a_live_job_has_is_skipped(self):
        world, ids = self.dead(1)
        world.sim.rules([rule({"hold": True}, prompt_contains="please fail")])
        live = world.submit("please fail 0", "--resubmit")["job_id"]
        self.assertNotEqual(live, ids[0])
        world.sim.wait_held(1)
        dry = world.aiq("dlq", "replay", "--all", "--dry-run", "--json", rc=0).json
        report = world.aiq("dlq", "replay", "--all", "--json", rc=0).json
        for answer in (dry, report):
            self.assertEqual((answer["replayed"], answer["skipped"]), (0, 1))
            self.assertEqual(answer["jobs"][0]["outcome"], "duplicate")
            self.assertEqual(answer["jobs"][0]["duplicate_of"], live)
        world.sim.release()
        world.wait_status(live, "completed")
        self.assertEqual(world.show(ids[0])["status"], "dead_lettered")
        self.assertEqual(world.stats()["dlq_open"], 1)

    def test_filters_dry_run_rate_and_deadline(self):
        world, ids = self.dead(4, "--tenant", "acme")
        other = world.submit("please fail other", "--tenant", "bolt")["job_id"]
        world.wait_final([other])
        dry = world.aiq("dlq", "replay", "--tenant", "acme", "--dry-run", "--json", rc=0).json
        self.assertEqual((dry["replayed"], dry["dry_run"]), (4, True))
        self.assertEqual(world.stats()["dlq_open"], 5)
        report = world.aiq("dlq", "replay", "--tenant", "acme", "--rate", "1/h", "--deadline",
                           "7d", "--json", rc=0).json
        self.assertEqual(report["replayed"], 4)
        # Oldest first, an hour apart.
        order = [j["job_id"] for j in report["jobs"]]
        letters = {x["job_id"]: int(x["dlq_id"]) for x in self.letters(world, "--state", "all")}
        self.assertEqual(order, sorted(order, key=letters.get))
        due = [world.sql("SELECT run_at FROM jobs WHERE job_id = ?", int(j))[0][0] for j in order]
        # The first was due at once, a moment after the rate began.
        steps = [b - a for a, b in zip(due, due[1:])]
        self.assertEqual(steps[1:], [3_600_000] * 2)
        self.assertTrue(3_590_000 < steps[0] <= 3_600_000, steps)
        self.assertTrue(all(world.show(j)["deadline"] for j in order))
        self.assertEqual([world.show(j)["status"] for j in order[1:]], ["queued"] * 3)
        self.assertEqual(world.show(other)["status"], "dead_lettered")

    def test_stats_counts_by_class_model_and_tenant(self):
        world, _ = self.dead(3, "--tenant", "acme")
        stats = world.aiq("dlq", "stats", "--json", rc=0).json
        self.assertEqual(stats["open"], 3)
        self.assertEqual([(g["class"], g["count"]) for g in stats["by_class"]], [("rejected", 3)])
        self.assertEqual([(g["model"], g["count"]) for g in stats["by_model"]], [(GPT, 3)])
        self.assertEqual([(g["tenant"], g["count"]) for g in stats["by_tenant"]], [("acme", 3)])
        self.assertIn("CLASS", world.aiq("dlq", "stats", rc=0).out)

    def test_discard_is_final_and_needs_a_note(self):
        world, ids = self.dead(3)
        letters = sorted(int(x["dlq_id"]) for x in self.letters(world))
        self.assertIn("--note", world.aiq("dlq", "discard", letters[0], rc=2).err)
        rows = world.aiq("dlq", "discard", letters[0], "--note", "not worth it", "--json",
                         rc=0).lines
        self.assertEqual([r["state"] for r in rows], ["discarded"])
        job = world.show(rows[0]["job_id"])
        self.assertEqual(job["status"], "failed")
        # None of them when one is resolved already.
        world.aiq("dlq", "discard", letters[1], letters[0], "--note", "x", rc=4)
        self.assertEqual(world.stats()["dlq_open"], 2)
        report = world.aiq("dlq", "replay", letters[0], "--json", rc=0).json
        self.assertEqual(report["jobs"][0]["outcome"], "already_resolved")
        self.assertEqual(world.show(rows[0]["job_id"])["status"], "failed")

    def test_wrong_usage_writes_nothing(self):
        world, ids = self.dead(2)
        letters = [x["dlq_id"] for x in self.letters(world)]
        world.aiq("dlq", "replay", rc=2)
        world.aiq("dlq", "replay", letters[0], "--all", rc=2)
        world.aiq("dlq", "replay", "--all", "--rate", "fast", rc=2)
        world.aiq("dlq", "replay", "--all", "--rate", "0/s", rc=2)
        world.aiq("dlq", "replay", "x", rc=2)
        world.aiq("dlq", "replay", letters[0], "999", rc=3)
        self.assertEqual(world.stats()["dlq_open"], 2)
        self.assertEqual({world.show(j)["generation"] for j in ids}, {1})

    def test_replay_through_kills_loses_and_repeats_nothing(self):
        world, ids = self.dead(40)
        world.sim.rules([])
        before = len(world.sim.calls())

        with ThreadPoolExecutor() as pool:
            replay = pool.submit(world.aiq, "dlq", "replay", "--all", "--busy-timeout", "60s",
                                 timeout=90)
            wait_until(lambda: len(world.sim.calls()) > before, what="the first call")
            world.kill_daemon()
            world.start_daemon()
            first = replay.result()
        self.assertIn(first.rc, (0, 7), first)
        # Once more, for what the interrupted one may not have reached.
        world.aiq("dlq", "replay", "--all", rc=0)
        world.wait_final(ids)
        for job_id in ids:
            job = world.show(job_id)
            self.assertEqual((job["status"], job["generation"]), ("completed", 2), json.dumps(job))
        self.assert_each_call_is_one_attempt(world.sim, [world.show(j) for j in ids])

    def test_withdrawing_one_of_two_keeps_the_times_of_the_replay(self):
        world = self.start(rules=[rule(REJECT, prompt_contains="please fail")], daemon=False)
        one = world.submit("please fail", "--deadline", "1h")
        two = world.submit("please fail", "--deadline", "1h")
        self.assertEqual(one["job_id"], two["job_id"])
        world.start_daemon()
        world.wait_final([one["job_id"]])
        world.stop_daemon()
        world.aiq("dlq", "replay", "--all", "--rate", "1/h", rc=0)
        due = world.sql("SELECT run_at, deadline FROM jobs")
        self.assertIsNone(due[0][1])
        world.aiq("cancel", one["submission_id"], rc=0)
        self.assertEqual(world.sql("SELECT run_at, deadline FROM jobs"), due)


if __name__ == "__main__":
    harness.main()
