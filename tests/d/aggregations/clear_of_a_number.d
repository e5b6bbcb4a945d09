/* SPDX-License-Identifier: Apache-2.0 */
/* clear() takes an aggregation. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_CLEAR_AGGARG] */
BEGIN
{
	clear(5);
	exit(0);
}
