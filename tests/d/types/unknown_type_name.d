/* SPDX-License-Identifier: Apache-2.0 */
/* A tag that is defined nowhere cannot be used. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SIZEOF_TYPE] */
struct no_such_struct_anywhere;
BEGIN
{
	trace(sizeof (struct no_such_struct_anywhere));
	exit(0);
}
