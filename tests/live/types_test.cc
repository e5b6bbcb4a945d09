// SPDX-License-Identifier: Apache-2.0
// Arguments by their types, as debug information tells them.
#include <gtest/gtest.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

constexpr uint64_t kRounds = 1000;

TEST(Types, ConditionsOnRealNumbersInMemoryHold) {
  Victim victim("typed");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 R"(from e in entry("typed!priced") where e.item->next->price > 1.25
         select new { name = e.function, calls = count() })");
  victim.run(kRounds);
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

}  // namespace
}  // namespace clew::live
