/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions in conditions. */
BEGIN
{
	x = 5;
	if (x > 0) {
		if (x > 2) {
			if (x > 4) {
				printf("more than four\n");
			} else {
				printf("three or four\n");
			}
		} else {
			printf("one or two\n");
		}
	}
	exit(0);
}
/* output:
more than four

*/
