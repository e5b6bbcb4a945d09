// SPDX-License-Identifier: Apache-2.0
#include "cluster/arrivals.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "cluster/wait.h"

namespace clew::cluster {
namespace {

TEST(Arrivals, AreReadableUntilTheyAreTaken) {
  Arrivals arrivals;
  EXPECT_FALSE(is_readable(arrivals.descriptor()));
  arrivals.put({.subject = "a", .reply = {}, .bytes = {}});
  arrivals.put({.subject = "b", .reply = {}, .bytes = {}});
  EXPECT_TRUE(is_readable(arrivals.descriptor()));
  EXPECT_EQ(arrivals.next()->subject, "a");
  EXPECT_TRUE(is_readable(arrivals.descriptor()));
  EXPECT_EQ(arrivals.next()->subject, "b");
  EXPECT_FALSE(arrivals.next());
  EXPECT_FALSE(is_readable(arrivals.descriptor()));
}

TEST(Arrivals, RingWithoutAMessage) {
  Arrivals arrivals;
  arrivals.ring();
  EXPECT_TRUE(is_readable(arrivals.descriptor()));
  EXPECT_FALSE(arrivals.next());
  EXPECT_FALSE(is_readable(arrivals.descriptor()));
}

TEST(Arrivals, CountWhatTheyGiveUp) {
  Arrivals arrivals;
  for (size_t i = 0; i < kArrivalsMax + 3; ++i)
    arrivals.put({.subject = "a", .reply = {}, .bytes = {}});
  EXPECT_EQ(arrivals.dropped(), 3U);
  size_t kept = 0;
  while (arrivals.next())
    ++kept;
  EXPECT_EQ(kept, kArrivalsMax);
}

TEST(Arrivals, AreBoundedInBytes) {
  Arrivals arrivals;
  const size_t fit = (kArrivalBytesMax - 1) / kMessageMax;
  for (size_t i = 0; i <= fit; ++i)
    arrivals.put({.subject = "a", .reply = {}, .bytes = Bytes(kMessageMax)});
  EXPECT_EQ(arrivals.dropped(), 1U);
  (void)arrivals.next();
  arrivals.put({.subject = "a", .reply = {}, .bytes = Bytes(kMessageMax)});
  EXPECT_EQ(arrivals.dropped(), 1U);
}

TEST(Arrivals, KeepTheFirstComplaintsAndCountTheOthers) {
  Arrivals arrivals;
  for (size_t i = 0; i < kComplaintsMax + 5; ++i)
    arrivals.complain(std::to_string(i));
  EXPECT_TRUE(is_readable(arrivals.descriptor()));
  const auto complaints = arrivals.take_complaints();
  ASSERT_EQ(complaints.size(), kComplaintsMax + 1);
  EXPECT_EQ(complaints.front(), "0");
  EXPECT_EQ(complaints.back(), "and 5 more");
  EXPECT_TRUE(arrivals.take_complaints().empty());
}

}  // namespace
}  // namespace clew::cluster
