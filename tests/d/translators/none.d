/* SPDX-License-Identifier: Apache-2.0 */
/* There is no translator from the type. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_XLATE_NONE] */
struct output { int a; };
BEGIN
{
	x = 1;
	trace(xlate <struct output> (x).a);
	exit(0);
}
