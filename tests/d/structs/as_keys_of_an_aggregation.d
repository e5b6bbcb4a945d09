/* SPDX-License-Identifier: Apache-2.0 */
/* Structs are keys by what is in them. */
struct key { int a; int b; };
struct key k;
BEGIN
{
	k.a = 1;
	@[k] = count();
	k.b = 3;
	@[k] = count();
	k.b = 0;
	@[k] = count();
	printa("%@d\n", @);
	exit(0);
}
/* output:
1
2

*/
