// SPDX-License-Identifier: Apache-2.0
// k-means as an operator: takes all rows of a query, and gives a row for each vector that they are
// put together to (stream/kmeans.h), once there are no more.
#pragma once

#include "answer/operator.h"
#include "answer/row_batch.h"
#include "collect/losses.h"
#include "query/query.h"
#include "stream/kmeans.h"

namespace clew::answer {

class Clusters final : public Operator {
 public:
  // Of the query's clustering; both are borrowed.
  Clusters(const query::Query& query, Operator& next);

  // Rows of the query's columns.
  void take(RowBatch& rows) override;
  // More may come: of another window.
  void finish() override {}
  void end(collect::Losses& losses);

 private:
  const query::Query& query_;
  const query::Clustering& clustering_;
  Operator& next_;
  stream::KMeans kmeans_;
  aggregate::Key key_;  // In the making.
};

}  // namespace clew::answer
