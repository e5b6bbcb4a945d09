/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: the first call names the string, later ones continue with NULL. */
BEGIN
{
	this->s = "a,b;;c";
	printf("%s ", strtok(this->s, ",;"));
	printf("%s ", strtok(NULL, ",;"));
	printf("%s ", strtok(NULL, ",;"));
	printf("%d\n", strtok(NULL, ",;") == NULL);
	exit(0);
}
/* output:
a b c 1

*/
