/* SPDX-License-Identifier: Apache-2.0 */
/* A rate without a unit is in hertz. */
tick-100
/++n == 3/
{
	printf("%s\n", probename);
	exit(0);
}
/* output:
tick-100

*/
