#include "cli/help_topics.h"

namespace aiq::cli {
namespace {

constexpr const char* kExitCodes = R"(Exit codes

  0    done
  1    the answer is no: a job that was waited for did not complete, a result
       is not there yet, a check found a fault
  2    wrong usage or invalid input; nothing was written
  3    no such job, entry, key, tenant, vendor, lock or dead letter
  4    conflict: the idempotency key belongs to another request
  5    refused by policy: disabled or unknown tenant, size, bypass
  6    the time of --timeout has passed
  7    busy or unreachable: another process owns the database, or no daemon is
       there where one is needed; try again later
  8    storage failed: disk full, I/O error, damaged or read-only file, a
       schema of another version
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)

What a writing command wrote before it exits 0 survives a power cut. A script
may repeat a command after 7, and a submit with --idempotency-key after any
code.
)";

constexpr const char* kStates = R"(States of a job

  queued         waits for its turn, or for its time
  processing     its request runs
  retrying       waits for its next attempt after a failure that may pass
  completed      has an answer: of the vendor, or from the cache
  dead_lettered  was given up, and stands in aiq dlq list
  failed         was given up, and somebody has discarded its dead letter
  cancelled      aiq cancel ended it

Live states are queued, processing and retrying; aiq wait waits for the end of
them. A dead letter can go back to queued; completed, failed and cancelled are
final.

Reasons of dead letters

  rejected              the vendor refuses the request itself
  attempts_exhausted    as many attempts failed as --max-attempts allows
  deadline              its deadline passed
  crash_limit           aiqd ended under it too often
  unknown_limit         too many attempts that may have been billed
  rate_limit_exhausted  rate limited too often, or for too long

See also: aiq help outcomes.
)";

constexpr const char* kOutcomes = R"(Outcomes of an attempt

Each attempt puts at most one request on the wire and has one outcome. Those
marked with * use none of the job's attempts.

  completed           the answer is stored
  rate_limited *      429; the vendor and model wait as long as it asked
  vendor_quota *      a spend limit; the vendor is paused until aiq resume
  auth *              the key is refused; the vendor is paused until aiq resume
  overloaded          503 or 529
  server_error        another 5xx, or 408, 409, 425
  connect_timeout     no connection in time; nothing was sent
  first_byte_timeout  sent, and no answer began in time
  total_timeout       sent, and the answer did not end in time
  network             DNS, connection or TLS failed, or it was cut
  bad_response        an answer that cannot be one
  empty_response      a valid answer without content
  rejected            the request itself is refused
  unknown             found open after aiqd had died
  crashed             the same where nothing is paid (api echo)
  lease_lost *        somebody else had taken the job over
  cancelled *         aiq cancel came while it ran
  released *          given back when aiqd stopped

billed says what it may have cost: no (nothing was sent, or the vendor answered
with an error), yes (usage was received), maybe (sent, and no usage seen).
)";

constexpr const char* kKeys = R"(Keys

Two keys are made of each request: of tenant, vendor, model, endpoint, body,
--locale, --safety and --scope. The body counts in canonical form: neither the
order of its members nor blanks matter, nor its members user, metadata, store,
stream and stream_options.

  idempotency_key  Equal requests that wait or run share one job, and so one
                   call. With --bypass-cache a job has none.
  cache_key        The same, but service_tier does not count, and tenants of
                   one cache_group share it. Under it answers are cached.
  client_key       Yours: --idempotency-key K. The same K and request name the
                   same job, whatever its state; another request is exit 4. It
                   makes a submit safe to repeat.

aiq submit --dry-run prints the keys of a request. aiq cache explain A B tells
whether two requests have one key, and where they differ if not.
)";

constexpr const char* kFiles = R"(Files

The database is the first of
  --db FILE, $AIQ_DB, db in the configuration,
  /var/lib/aiq/aiq.db for root,
  $XDG_STATE_HOME/aiq/aiq.db (~/.local/state/aiq/aiq.db)

The configuration is the first of
  --config FILE, $AIQ_CONFIG,
  $XDG_CONFIG_HOME/aiq/aiq.toml (~/.config/aiq/aiq.toml), if it is there,
  /etc/aiq/aiq.toml, if it is there

Beside the database:
  DATABASE-wal, DATABASE-shm  its newest part, and the index of that
  DATABASE.lock               names the process that owns it
  DATABASE.sock               where aiqd listens

Copy it with aiq db backup: a plain copy of the file may lack the newest jobs.
aiq config show prints what is in force, and aiq db info where the database is.
)";

constexpr const char* kEnvironment = R"(Environment

  AIQ_DB                 the database; --db goes before it
  AIQ_CONFIG             the configuration; --config goes before it
  XDG_CONFIG_HOME        where aiq/aiq.toml is looked for; else ~/.config
  XDG_STATE_HOME         where aiq/aiq.db is for users other than root; else
                         ~/.local/state
  HOME                   the home folder, for the two above
  NO_COLOR               set and not empty: neither colours nor progress
  TERM                   "dumb": the same
  TMPDIR                 where submit --batch keeps a copy of a pipe; else
                         /tmp
  CREDENTIALS_DIRECTORY  where an api_key_file without a slash is; systemd
                         sets it

API keys stand in the variables that api_key_env names in aiq.toml(5). Only
aiqd needs them.
)";

constexpr const char* kTimes = R"(Times and durations

A duration is a whole number with a unit, or several from large to small:
  250ms  5s  2m  12h  7d  1h30m

A time is one of RFC 3339: 2026-03-01T12:00:00Z, 2026-03-01T13:00:00+01:00.

  --since, --until of lists     a time, or an age: 1h is an hour ago
  --deadline, --until of pause  a time, or a duration from now on
  --at                          a time
  --delay, --timeout, --ttl,
  --max-age, --older-than       a duration

Times in output are UTC. In JSON they have milliseconds:
2026-03-01T12:00:00.000Z.
)";

constexpr const char* kJson = R"(JSON

With --json a command writes one object for one thing, and for a list one line
per row (JSON Lines); nothing else is on standard output. Names of members are
those of the tables of aiq(1).

  Times are UTC of RFC 3339 with milliseconds.
  Ids are strings.
  What is not known is null, never 0.

An error is an object on standard error:
  {"error":{"code":"no_such_job","message":"...","hint":"..."}}
The code is stable, message and hint are for people. The exit code is the same
as without --json (aiq help exit-codes).

Warnings are text on standard error; --quiet turns them off.

  aiq list --limit 0 --json | jq -r 'select(.status=="completed").job_id'
)";

constexpr const char* kLimits = R"(Limits

  tenant                  1 to 64 of A-Z a-z 0-9 . _ -
  vendor, model, label    1 to 128 of A-Z a-z 0-9 . _ : / -
  request, answer         limits.request_bytes, limits.response_bytes: 16MiB
  depth of a body         128 arrays and objects
  priority                -100 to 100
  duration                up to 36525d

What limits calls to vendors stands in aiq.toml(5); 0 is no limit:
  max_in_flight, rpm, tpm  of a vendor, a model or a tenant, where the section
                           has the key
  retry.max_attempts       attempts that count, 5
  retry.unknown_retries    retries after an attempt that may have been billed,
                           2; here 0 means none
  retry.give_up_after      since the first rate limit, 24h

aiq vendor show VENDOR prints what a vendor's rate headers said last.
)";

}  // namespace

std::span<const HelpTopic> help_topics() {
  static const HelpTopic topics[] = {
      {"exit-codes", "what a script may rely on", kExitCodes},
      {"states", "of jobs, and why they become dead letters", kStates},
      {"outcomes", "of attempts, and what they may have cost", kOutcomes},
      {"keys", "which requests are equal", kKeys},
      {"files", "where database and configuration are", kFiles},
      {"environment", "the variables that are read", kEnvironment},
      {"times", "how times, ages and durations are written", kTimes},
      {"json", "what --json promises", kJson},
      {"limits", "of names, sizes and calls", kLimits},
  };
  return topics;
}

}  // namespace aiq::cli
