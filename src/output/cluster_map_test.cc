// SPDX-License-Identifier: Apache-2.0
#include "output/cluster_map.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Value;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

std::vector<Column> columns() {
  return {{.name = "host", .type = ColumnType::String, .role = ColumnRole::Key},
          {.name = "window", .type = ColumnType::Time, .role = ColumnRole::Key},
          {.name = "cluster", .type = ColumnType::Integer, .role = ColumnRole::Cluster},
          {.name = "centre", .type = ColumnType::String, .role = ColumnRole::Centre}};
}

void add(ClusterMap& map, const std::string& host, int64_t second, int64_t cluster) {
  const std::string centre = "kind <" + std::to_string(cluster) + ">";
  map.add(std::vector<Value>{Value(host), Value(second * kSecond), Value(cluster), Value(centre)});
}

TEST(ClusterMap, DrawsTimeToTheRightAndASymbolForEachPeriod) {
  ClusterMap map(columns());
  for (const int64_t second : {1, 2, 3})
    add(map, "n1", second, 1);
  add(map, "n1", 4, 2);
  add(map, "other", 2, 2);
  add(map, "other", 4, 3);
  const std::string text = map.text(80, false);
  EXPECT_THAT(text, HasSubstr("\nn1     1112\nother  .2.3\n\n"));
  EXPECT_THAT(text, HasSubstr("1       3  kind <1>\n2       2  kind <2>\n3       1  kind <3>\n"));
  EXPECT_THAT(map.text(80, true), HasSubstr("\x1b[48;5;33m"));
}

// 100 periods in 10 columns: ten each, of which six or more are of one cluster.
TEST(ClusterMap, ShowsTheMostFrequentOneWhereThereIsNoRoomForAll) {
  ClusterMap map(columns());
  for (int64_t i = 0; i < 100; ++i)
    add(map, "n", i, i < 44 ? 1 : 2);
  EXPECT_THAT(map.text(13, false), HasSubstr("\nn  1111222222\n"));
}

TEST(ClusterMap, IsDrawnAsAPictureWithoutMarkupOfOthers) {
  ClusterMap map(columns());
  add(map, "a<b", 1, 1);
  add(map, "a<b", 2, 2);
  const ClusterMap::Picture picture = map.svg(1'200, 60);
  EXPECT_THAT(picture.content, HasSubstr("a&lt;b"));
  EXPECT_THAT(picture.content, HasSubstr("kind &lt;2&gt;"));
  EXPECT_THAT(picture.content, Not(HasSubstr("<b")));
  EXPECT_GT(picture.height, 60);
}

TEST(ClusterMap, StandsTimesThatAreFarApartAndRowsWithoutAny) {
  ClusterMap map(columns());
  EXPECT_EQ(map.text(80, false), "no clusters\n");
  map.add(std::vector<Value>{Value("n"), Value(INT64_MIN), Value(int64_t{1}), Value("")});
  map.add(std::vector<Value>{Value("n"), Value(INT64_MAX), Value(int64_t{2}), Value("")});
  map.add(std::vector<Value>{Value("n"), Value(INT64_MAX - 1), Value(int64_t{70}), Value("")});
  map.add(std::vector<Value>{Value("n"), Value(), Value(int64_t{1}), Value("")});
  EXPECT_FALSE(map.text(80, false).empty());
  EXPECT_FALSE(map.svg(1'200, 0).content.empty());
}

TEST(ClusterMap, NeedsAClusterAndATime) {
  std::vector<Column> some = columns();
  EXPECT_TRUE(ClusterMap::can_draw(some));
  some.erase(some.begin() + 1);
  EXPECT_FALSE(ClusterMap::can_draw(some));
}

}  // namespace
}  // namespace clew::output
