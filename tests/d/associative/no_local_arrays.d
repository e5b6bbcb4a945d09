/* SPDX-License-Identifier: Apache-2.0 */
/* this-> has no associative arrays. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DECL_LOCASSC] */
this int a[int];
BEGIN
{
	exit(0);
}
