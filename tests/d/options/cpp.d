/* SPDX-License-Identifier: Apache-2.0 */
/* -C passes the program through the preprocessor, with -D. */
/* flags: -q -C -DVALUE=7 */
#define TWICE(x) ((x) * 2)
#ifdef VALUE
BEGIN
{
	printf("%d\n", TWICE(VALUE));
	exit(0);
}
#else
BEGIN
{
	printf("not defined\n");
	exit(0);
}
#endif
/* output:
14

*/
