#pragma once
// InvoiceBook over SQLite, on the connection of a reader or of the writer.

#include "core/store/invoice_book.h"
#include "core/store/sqlite_db.h"

namespace aiq {

class SqliteInvoices final : public InvoiceBook {
 public:
  explicit SqliteInvoices(SqliteDb& db) : db_(db) {}

  std::optional<InvoiceRow> invoice(std::int64_t key) override;
  std::vector<InvoiceRow> named(const std::string& id) override;
  std::vector<InvoiceRow> list(const InvoiceFilter& filter, const Page& page) override;
  std::vector<InvoiceRow> of_span(const InvoiceSpan& span) override;
  std::vector<std::int64_t> own_drafts(const TenantPeriod& hour) override;
  std::vector<BilledLine> billed_lines(const InvoiceSpan& span) override;
  Int128 billed_total(const InvoiceSpan& span) override;
  std::vector<std::string> billed_currencies(const std::string& tenant, UnixMs start,
                                             UnixMs end) override;
  Unbilled unbilled(const InvoiceSpan& span) override;
  std::int64_t add(const InvoiceRow& row) override;
  void update(const InvoiceRow& row) override;

 private:
  SqliteDb& db_;
};

}  // namespace aiq
