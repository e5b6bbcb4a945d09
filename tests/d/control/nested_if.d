/* SPDX-License-Identifier: Apache-2.0 */
/* An else belongs to the nearest if. */
BEGIN
{
	x = 1;
	y = 0;
	if (x)
		if (y)
			printf("both\n");
		else
			printf("x only\n");
	exit(0);
}
/* output:
x only

*/
