/* SPDX-License-Identifier: Apache-2.0 */
/* Option nolibs: without the library its names are unknown. */
/* flags: -q -xerrtags -x nolibs */
/* status: 1 */
/* stderr: [D_IDENT_UNDEF] */
BEGIN
{
	trace(SIGKILL);
	exit(0);
}
