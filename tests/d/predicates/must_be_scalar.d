/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: neither structs nor aggregations are predicates. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PRED_SCALAR] */
struct s { int a; };
struct s v;
BEGIN
/v/
{
	exit(0);
}
