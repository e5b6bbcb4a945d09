/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 12: a load before any store is legal and means 0. */
BEGIN
{
	printf("%d %d %d\n", ++this->x, this->x, y++);
	printf("%d\n", y);
	exit(0);
}
/* output:
1 1 0
1

*/
