/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: strtok() goes on in the next clause. */
BEGIN
{
	this->first = strtok("one two three", " ");
}
BEGIN
{
	printf("%s ", this->first);
	printf("%s ", strtok(NULL, " "));
	printf("%s\n", strtok(NULL, " "));
	exit(0);
}
/* output:
one two three

*/
