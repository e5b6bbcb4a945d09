/* SPDX-License-Identifier: Apache-2.0 */
/* Members of members are separated by dots, elements are numbers in brackets. */
BEGIN
{
	this->t = "{\"a\": {\"b\": [10, 20, {\"c\": \"deep\"}]}}";
	printf("%s %s\n", json(this->t, "a.b[1]"), json(this->t, "a.b[2].c"));
	exit(0);
}
/* output:
20 deep

*/
