/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: strtok() begins anew in each clause. */
BEGIN
{
	this->first = strtok("one two three", " ");
}
BEGIN
{
	printf("%s ", this->first);
	printf("%s ", strtok("four five", " "));
	printf("%s\n", strtok(NULL, " "));
	exit(0);
}
/* output:
one four five

*/
