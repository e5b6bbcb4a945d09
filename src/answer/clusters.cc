// SPDX-License-Identifier: Apache-2.0
#include "answer/clusters.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "answer/columns.h"
#include "base/assert.h"

namespace clew::answer {
namespace {

using aggregate::Value;

constexpr size_t kTermsShown = 3;
constexpr double kShareShown = 0.005;  // What is less rounds to 0 %.

// Nothing is no number.
double number_of(const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* large = std::get_if<uint64_t>(&value)) return static_cast<double>(*large);
  return std::nan("");
}

std::string text_of_term(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* large = std::get_if<uint64_t>(&value)) return fmt::format("{}", *large);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return "null";
}

// "read 62%, write 31%", or with signs "+70% yield, -38% write".
std::string shown(const std::vector<stream::KMeansTerm>& terms, bool are_differences) {
  std::string text;
  for (size_t i = 0; i < std::min(terms.size(), kTermsShown); ++i) {
    if (std::abs(terms[i].share) < kShareShown) break;
    if (!text.empty()) text += ", ";
    const std::string name = text_of_term(terms[i].name);
    text += are_differences ? fmt::format("{:+.0f}% {}", 100 * terms[i].share, name)
                            : fmt::format("{} {:.0f}%", name, 100 * terms[i].share);
  }
  return text;
}

}  // namespace

Clusters::Clusters(const query::Query& query, Operator& next)
    : query_(query),
      clustering_(*query.clustering),
      next_(next),
      kmeans_(clustering_.clusters),
      key_(clustering_.by.size()) {}

void Clusters::take(RowBatch& rows) {
  CLEW_ASSERT(rows.width() == query_.columns.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<Value> row = rows.at(i);
    for (size_t k = 0; k < key_.size(); ++k)
      key_[k] = row[clustering_.by[k]];
    Value& term = row[clustering_.of];
    name_enumerator(query_, term, query_.columns[clustering_.of].expression.type);
    kmeans_.add(key_, term, number_of(row[clustering_.value]));
  }
}

void Clusters::end(collect::Losses& losses) {
  stream::Clustered clustered = kmeans_.finish();
  std::vector<std::string> centres;
  centres.reserve(clustered.centres.size());
  for (const stream::Clustered::Centre& centre : clustered.centres)
    centres.push_back(shown(centre.terms, false));
  RowBatch rows(key_.size() + query::kClusterColumns);
  for (stream::Clustered::Vector& vector : clustered.vectors) {
    const std::span<Value> row = rows.add();
    std::move(vector.key.begin(), vector.key.end(), row.begin());
    const std::span<Value> own = row.subspan(key_.size());
    own[static_cast<size_t>(query::ClusterColumn::Cluster)] =
        static_cast<int64_t>(vector.cluster + 1);
    own[static_cast<size_t>(query::ClusterColumn::Distance)] = vector.distance;
    own[static_cast<size_t>(query::ClusterColumn::Centre)] = centres[vector.cluster];
    own[static_cast<size_t>(query::ClusterColumn::Difference)] = shown(vector.differences, true);
  }
  if (!rows.empty()) next_.take(rows);
  next_.finish();
  collect::count_cause(losses.dropped, collect::kDroppedVectors, kmeans_.dropped_vectors());
  collect::count_cause(losses.dropped, collect::kDroppedTerms, kmeans_.dropped_terms());
  collect::count_cause(losses.dropped, collect::kDroppedAmounts, kmeans_.unusable());
}

}  // namespace clew::answer
