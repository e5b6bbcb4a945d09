/* SPDX-License-Identifier: Apache-2.0 */
/* A member that the translator does not define. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_XLATE_NOCONV] */
/* stderr: translator does not define conversion for member: b */
struct output { int a; int b; };
translator struct output < int V > {
	a = V;
};
BEGIN
{
	x = 1;
	trace(xlate <struct output> (x).b);
	exit(0);
}
