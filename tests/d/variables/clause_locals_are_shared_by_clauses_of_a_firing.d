/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 19: this->x of one clause is seen by the next one of the same firing. */
BEGIN
{
	this->x = 41;
}
BEGIN
{
	this->x++;
}
BEGIN
{
	printf("%d\n", this->x);
	exit(0);
}
/* output:
42

*/
