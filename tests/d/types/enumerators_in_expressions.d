/* SPDX-License-Identifier: Apache-2.0 */
/* Enumerators may use those before them, and be negative. */
enum { LOW = -3, HIGH = LOW * -2, NEXT };
BEGIN
{
	printf("%d %d %d\n", LOW, HIGH, NEXT);
	exit(0);
}
/* output:
-3 6 7

*/
