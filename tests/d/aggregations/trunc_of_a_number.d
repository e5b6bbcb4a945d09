/* SPDX-License-Identifier: Apache-2.0 */
/* trunc() takes an aggregation. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_TRUNC_AGGARG] */
BEGIN
{
	trunc(5);
	exit(0);
}
