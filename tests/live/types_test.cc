// SPDX-License-Identifier: Apache-2.0
// Arguments by their types, as debug information tells them.
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr uint64_t kTypeRounds = 1000;

TEST(Types, ConditionsOnRealNumbersInMemoryHold) {
  Victim victim("typed");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 R"(from e in entry("typed!priced") where e.item->next->price > 1.25
         select new { name = e.function, calls = count() })");
  victim.run(kTypeRounds);
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls()["priced"], truth.at("priced_high")) << report.summary;
}

TEST(Types, RealNumbersInMemoryAreShown) {
  Victim victim("typed");
  Tracer tracer = Tracer::attach(victim.pid(), R"(from e in entry("typed!priced")
                                      select price = e.item->price, weight = e.item->weight)");
  victim.run(10);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 10U) << report.error;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_EQ(report.rows[i].at("price").get<double>(), static_cast<double>(i) / 4);
    EXPECT_EQ(report.rows[i].at("weight").get<double>(), static_cast<double>(i));
  }
}

TEST(Types, RealArgumentsAndResultsAreRead) {
  Victim victim("typed");
  Tracer tracer =
      Tracer::attach(victim.pid(), R"(from r in return("typed!scaled") select price = r.entry.price,
                         count = r.entry.count, factor = r.entry.factor, result = r.retval)");
  victim.run(10);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 10U) << report.error;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const auto round = static_cast<double>(i);
    EXPECT_EQ(report.rows[i].at("price").get<double>(), round / 4);
    EXPECT_EQ(report.rows[i].at("count").get<uint64_t>(), i);
    EXPECT_EQ(report.rows[i].at("factor").get<double>(), 0.5);
    EXPECT_EQ(report.rows[i].at("result").get<double>(), round / 8 + round);
  }
}

TEST(Types, ConditionsOnRealResultsHold) {
  Victim victim("typed");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      R"(from r in return("typed!scaled") where r.retval > 100.5 select calls = count())");
  const uint64_t untraced = Victim("typed").run(kTypeRounds);
  EXPECT_EQ(victim.run(kTypeRounds), untraced);
  const Numbers truth = victim.counts();
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("calls").get<uint64_t>(), truth.at("scaled_high"));
}

TEST(Types, NoNumberIsLessThanAnything) {
  for (const auto& [condition, calls] : std::map<std::string, uint64_t>{
           {"e.value < 0", 1}, {"0 > e.value", 1}, {"e.value <= 0", 1}, {"e.value != 0", 3}}) {
    Victim victim("typed");
    Tracer tracer = Tracer::attach(victim.pid(), "from e in entry(\"typed!odd\") where " +
                                                     condition + " select calls = count()");
    victim.run(1);
    const Report report = tracer.finish();
    ASSERT_EQ(report.rows.size(), 1U) << condition << report.error;
    EXPECT_EQ(report.rows[0].at("calls").get<uint64_t>(), calls) << condition;
  }
}

TEST(Types, RealNumbersAreSummed) {
  Victim victim("typed");
  Tracer tracer =
      Tracer::attach(victim.pid(), R"(from r in return("typed!scaled") group by r.function
        select sum = sum(r.entry.price), mean = avg(r.retval), least = min(r.entry.factor),
               largest = max(r.retval), deviation = stddev(r.entry.price), calls = count(),
               variance = variance(r.entry.price))");
  victim.run(kTypeRounds);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  const auto& row = report.rows[0];
  EXPECT_EQ(row.at("sum").get<double>(), 999.0 * 500 / 4);
  EXPECT_NEAR(row.at("mean").get<double>(), 1.125 * 999 / 2, 1e-9);
  EXPECT_EQ(row.at("least").get<double>(), 0.5);
  EXPECT_EQ(row.at("largest").get<double>(), 1.125 * 999);
  const double variance = (1000.0 * 1000 - 1) / 12 / 16;
  EXPECT_NEAR(row.at("deviation").get<double>(), std::sqrt(variance), 1e-9);
  EXPECT_NEAR(row.at("variance").get<double>(), variance, 1e-6);
  EXPECT_EQ(row.at("calls").get<uint64_t>(), kTypeRounds);
}

TEST(Types, SumsOfRealNumbersByInterval) {
  Victim victim("typed");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      R"(from r in return("typed!scaled") select sum = sum(r.entry.price) every 50ms)");
  victim.run(kTypeRounds);
  const Report report = tracer.finish();
  double sum = 0;
  for (const auto& row : report.rows)
    sum += row.at("sum").get<double>();
  EXPECT_EQ(sum, 999.0 * 500 / 4) << report.error;
}

TEST(Types, VectorRegistersAreReadByTheirNames) {
  Victim victim("typed");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      R"(from r in return("typed!halved") select value = r.entry.xmm0f, half = r.xmm0f)");
  victim.run(10);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 10U) << report.error;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_EQ(report.rows[i].at("value").get<double>(), static_cast<double>(i));
    EXPECT_EQ(report.rows[i].at("half").get<double>(), static_cast<double>(i) / 2);
  }
}

}  // namespace
}  // namespace clew::live
