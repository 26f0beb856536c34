#pragma once
// The outside world broke: the database can't do what was asked. Thrown; caught by the mains and
// the thread loops only.

#include <stdexcept>
#include <string>

namespace aiq {

class StoreError : public std::runtime_error {
 public:
  enum class Kind {
    busy,      // another program holds the database; later it may work
    full,      // no space, or a size limit
    io,        // read, write or sync failed
    corrupt,   // not a database, or a damaged one
    readonly,  // no permission to write (or to open)
    version,   // a schema that is not this program's; a newer one, or one to migrate
    missing,   // there is no database file
  };
  StoreError(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  [[nodiscard]] Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

[[nodiscard]] const char* to_string(StoreError::Kind kind);

}  // namespace aiq
