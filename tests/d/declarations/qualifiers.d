/* SPDX-License-Identifier: Apache-2.0 */
/* const and volatile are accepted. */
const int a;
volatile unsigned char b;
BEGIN
{
	b = 300;
	printf("%d %d\n", a, b);
	exit(0);
}
/* output:
0 44

*/
