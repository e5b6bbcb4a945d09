/* SPDX-License-Identifier: Apache-2.0 */
/* normalize() takes an aggregation. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_NORMALIZE_AGGARG] */
BEGIN
{
	normalize(5, 5);
	exit(0);
}
