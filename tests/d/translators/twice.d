/* SPDX-License-Identifier: Apache-2.0 */
/* One translator for each pair of types. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_XLATE_REDECL] */
struct output { int a; };
translator struct output < int V > {
	a = V;
};
translator struct output < int V > {
	a = V + 1;
};
BEGIN
{
	exit(0);
}
