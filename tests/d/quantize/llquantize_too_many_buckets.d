/* SPDX-License-Identifier: Apache-2.0 */
/* What no table holds is an error, and says so. */
/* flags: -q -xerrtags -e */
/* status: 1 */
/* stderr: [D_NOMEM] '@a' has 1170003 buckets; 65537 is the most */
BEGIN
{
	@a = llquantize(1, 10, 5, 17, 50000);
	exit(0);
}
