#pragma once
// One process owns a database: it holds an flock on DATABASE.lock. The kernel frees it when the
// process ends, however it ends; so who gets the lock knows that the old owner is dead.

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/file.h"

namespace aiq {

class OwnerLock {
 public:
  // Who holds it, as the holder wrote it; for messages only.
  struct Holder {
    std::int64_t pid = 0;
    std::string program;
  };

  // Takes the lock if it is free; nullopt when another process (or this one) has it.
  // Throws StoreError (readonly, io) when the lock file can't be made.
  [[nodiscard]] static std::optional<OwnerLock> try_acquire(const std::string& db_path,
                                                            const std::string& program);
  [[nodiscard]] static std::optional<Holder> holder(const std::string& db_path);

 private:
  explicit OwnerLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace aiq
