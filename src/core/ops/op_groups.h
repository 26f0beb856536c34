#pragma once
// The operations of each file of this folder, for the registry, and what the files share.

#include <span>
#include <string>

#include "core/base/spelling.h"
#include "core/engine/submit.h"
#include "core/ops/input.h"
#include "core/ops/json_render.h"
#include "core/ops/op.h"

namespace aiq {

[[nodiscard]] std::span<const Op> submit_ops();
[[nodiscard]] std::span<const Op> job_ops();
[[nodiscard]] std::span<const Op> stats_ops();
[[nodiscard]] std::span<const Op> pause_ops();
[[nodiscard]] std::span<const Op> vendor_ops();
[[nodiscard]] std::span<const Op> cache_ops();
[[nodiscard]] std::span<const Op> lock_ops();
[[nodiscard]] std::span<const Op> db_ops();
[[nodiscard]] std::span<const Op> dlq_ops();
[[nodiscard]] std::span<const Op> dlq_edit_ops();
[[nodiscard]] std::span<const Op> event_ops();
[[nodiscard]] std::span<const Op> price_ops();
[[nodiscard]] std::span<const Op> usage_ops();
[[nodiscard]] std::span<const Op> aggregate_ops();
[[nodiscard]] std::span<const Op> cost_ops();
[[nodiscard]] std::span<const Op> cost_read_ops();
[[nodiscard]] std::span<const Op> reprice_ops();
[[nodiscard]] std::span<const Op> invoice_ops();
[[nodiscard]] std::span<const Op> import_ops();
[[nodiscard]] std::span<const Op> audit_ops();
[[nodiscard]] std::span<const Op> repair_ops();
[[nodiscard]] std::span<const Op> batch_ops();
[[nodiscard]] std::span<const Op> batch_load_ops();

[[nodiscard]] Failure no_such_dead_letter(std::int64_t dlq_id);

// The members of `submit` as the engine takes them.
[[nodiscard]] Expected<SubmitInput, Failure> submit_input_of(const Json& in);

// State of a vendor or, with `model`, of one of its models, from what the store knows.
// {"state","reason","until"}: paused before breaker_open (of a model at least) before
// unproven before ok.
[[nodiscard]] Json vendor_state(const StoreStats& stats, const std::string& vendor, UnixMs now);
[[nodiscard]] int vendor_in_flight(const StoreStats& stats, const std::string& vendor);
// Names of the configured vendors and of those that the database knows besides, in order.
[[nodiscard]] std::vector<std::string> vendor_names(const Config& config, const StoreStats& stats);

}  // namespace aiq
