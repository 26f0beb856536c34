#include <algorithm>

#include "core/ops/op_groups.h"

namespace aiq {
namespace {

std::vector<Op> collect() {
  std::vector<Op> out;
  for (const std::span<const Op> group :
       {submit_ops(),  job_ops(),   stats_ops(),      pause_ops(), vendor_ops(),
        cache_ops(),   lock_ops(),  db_ops(),         dlq_ops(),   dlq_edit_ops(),
        event_ops(),   usage_ops(), aggregate_ops(),  cost_ops(),  cost_read_ops(),
        reprice_ops(), batch_ops(), batch_load_ops(), price_ops(), invoice_ops(),
        import_ops(),  audit_ops(), repair_ops()})
    out.insert(out.end(), group.begin(), group.end());
  for (const Op& op : out)
    AIQ_CHECK((op.read == nullptr) != (op.prepare == nullptr));
  return out;
}

// Rolls back unless the transaction was committed.
class Transaction {
 public:
  explicit Transaction(Store& store) : store_(store) { store_.begin(); }
  ~Transaction() {
    if (!committed_) store_.rollback();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    store_.commit();
    committed_ = true;
  }

 private:
  Store& store_;
  bool committed_ = false;
};

}  // namespace

std::span<const Op> all_ops() {
  static const std::vector<Op> ops = collect();
  return ops;
}

const Op* find_op(std::string_view name) {
  const std::span<const Op> ops = all_ops();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [name](const Op& op) { return op.name == name; });
  return found == ops.end() ? nullptr : &*found;
}

Expected<OpResult, Failure> run_write(const Op& op, const OpEnv& env, Store& store,
                                      const Json& in) {
  AIQ_CHECK(op.prepare != nullptr);
  auto step = op.prepare(env, in);
  if (!step) return Unexpected{std::move(step).error()};
  Transaction transaction(store);
  auto result = (*step)(store);
  if (result) transaction.commit();
  return result;
}

Failure local_only(const Op& op) {
  std::string command(op.name);
  std::replace(command.begin(), command.end(), '.', ' ');
  return {Exit::usage, "local_only", "aiqd does not carry out " + std::string(op.name),
          "`aiq " + command + "` reads the file itself; run it as the owner of the file"};
}

std::int64_t request_bytes_bound(std::int64_t request_bytes) {
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 30;
  return request_bytes > 0 ? request_bytes : kUnlimited;
}

Failure failure_of(const StoreError& error) {
  using Kind = StoreError::Kind;
  const std::string message = error.what();
  switch (error.kind()) {
    case Kind::busy:
      return {Exit::busy, "busy", message, "try again, or give it longer with --busy-timeout"};
    case Kind::full:
      return {Exit::storage, "disk_full", message,
              "nothing was written; make space where the database is and try again"};
    case Kind::io:
      return {Exit::storage, "io_error", message,
              "look at the disk and the kernel's log; then run `aiq db check`"};
    case Kind::corrupt:
      return {Exit::storage, "corrupt", message,
              "keep a copy of the file; `aiq db check` tells what is damaged"};
    case Kind::readonly:
      return {Exit::storage, "read_only", message,
              "check who owns the folder and the file, and who runs this program"};
    case Kind::version:
      return {Exit::storage, "schema_version", message,
              "the file and this program are of different versions"};
    case Kind::missing:
      return {Exit::storage, "no_database", message, "`aiq db init` makes one; --db names another"};
  }
  AIQ_CHECK(false);
}

}  // namespace aiq
