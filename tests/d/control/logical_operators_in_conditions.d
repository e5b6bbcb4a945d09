/* SPDX-License-Identifier: Apache-2.0 */
/* && and || in conditions. */
BEGIN
{
	a = 1;
	b = 0;
	if (a && !b) {
		printf("1");
	}
	if (b || a) {
		printf("2");
	}
	if (a ^^ a) {
		printf("3");
	}
	printf("\n");
	exit(0);
}
/* output:
12

*/
