/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11 and 50. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_MACRO_UNDEF] */
/* stderr: macro argument $1 is not defined */
BEGIN
{
	trace($1);
	exit(0);
}
