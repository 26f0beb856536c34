// Exact money inside SQL.

#include "core/store/sqlite_pico.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "core/store/sqlite_db.h"

namespace aiq::test {
namespace {

// The first column of an expression, as text; nullopt for NULL.
std::optional<std::string> value(SqliteDb& db, const char* sql) {
  Query query(db, sql);
  REQUIRE(query.step());
  return query.null(0) ? std::nullopt : std::optional(query.text(0));
}

}  // namespace

TEST_CASE("sqlite pico: sums and differences are exact beyond int64") {
  SqliteDb db(":memory:", SqliteMode::write, 0);
  CHECK(value(db,
              "SELECT pico_sum(column1) FROM (VALUES (9223372036854775807), "
              "(9223372036854775807), (NULL), ('9223372036854775807'))") == "27670116110564327421");
  CHECK(value(db,
              "SELECT pico_sum(column1) FROM (VALUES (-9223372036854775807 - 1), "
              "('-20000000000000000000'), (1))") == "-29223372036854775807");
  CHECK(value(db, "SELECT pico_sum(x) FROM (SELECT 1 AS x WHERE 0)") == "0");
  CHECK(value(db, "SELECT pico_add('18446744073709551616', -1)") == "18446744073709551615");
  CHECK(value(db, "SELECT pico_sub(-9223372036854775807, 9)") == "-9223372036854775816");
  CHECK(value(db, "SELECT pico_add(1, NULL)") == std::nullopt);
}

TEST_CASE("sqlite pico: a product beyond one row is NULL") {
  SqliteDb db(":memory:", SqliteMode::write, 0);
  CHECK(value(db, "SELECT pico_mul(400000, 2500000)") == "1000000000000");
  CHECK(value(db, "SELECT pico_mul(9223372036854775807, 1)") == "9223372036854775807");
  CHECK(value(db, "SELECT pico_mul(9223372036854775807, 2)") == std::nullopt);
}

TEST_CASE("sqlite pico: columns, rounding and comparisons") {
  SqliteDb db(":memory:", SqliteMode::write, 0);
  CHECK(value(db, "SELECT pico_of(-1, 750000000000)") == "-250000000000");
  CHECK(value(db, "SELECT pico_of(9000000000, 1)") == "9000000000000000000001");
  CHECK(value(db, "SELECT pico_round(1125000000000, pico_digits('USD'))") == "1130000000000");
  CHECK(value(db, "SELECT pico_round(-1125000000000, 2)") == "-1130000000000");
  CHECK(value(db, "SELECT pico_round(1499999999999, pico_digits('JPY'))") == "1000000000000");
  CHECK(value(db, "SELECT pico_cmp('9223372036854775808', 9223372036854775807)") == "1");
  CHECK(value(db, "SELECT pico_cmp('-20', '-3')") == "-1");
  CHECK(value(db, "SELECT pico_cmp(4, '4')") == "0");
  CHECK(value(db, "SELECT pico_sign('-99999999999999999999')") == "-1");
}

TEST_CASE("sqlite pico: what is no whole number is an error") {
  SqliteDb db(":memory:", SqliteMode::write, 0);
  CHECK_THROWS_AS((void)value(db, "SELECT pico_add(1.5, 1)"), StoreError);
  CHECK_THROWS_AS((void)value(db, "SELECT pico_sum('1.5')"), StoreError);
  CHECK_THROWS_AS((void)value(db, "SELECT pico_add('170141183460469231731687303715884105727', 1)"),
                  StoreError);
}

}  // namespace aiq::test
