// SPDX-License-Identifier: Apache-2.0
// Rewrites of joins by cause (Pivot Tracing, table 3): what a query counts of an event that is
// joined is counted in front of the join, so that one row takes the place of a row for each event.
//
//     from b in B join a in A on a -> b groupby b.k, a.key select sum(a.x), sum(b.y), count()
//  =  from b in B
//     join a in (from a in A groupby a.key select count() as n, sum(a.x) as s) on a -> b
//     groupby b.k, a.key select sum(a.s), sum(b.y * a.n), sum(a.n)
//
// Where several joins are independent of each other, each one's aggregates are multiplied by the
// counts of the others. Conditions on `a` alone go with it. Only of joins of all that happened
// before: the first of what passes is not the first, if it passes. Each is tested to give the same
// rows as the query itself on random graphs.
#pragma once

#include "query/query.h"

namespace clew::plan {

// The query itself, where nothing can be rewritten.
query::Query rewrite_join(query::Query query);

}  // namespace clew::plan
