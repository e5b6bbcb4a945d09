/* SPDX-License-Identifier: Apache-2.0 */
/* json() gives a member's value, strings without quotes. */
BEGIN
{
	this->t = "{\"name\": \"clew\", \"size\": 42, \"is\": true}";
	printf("%s %s %s\n", json(this->t, "name"), json(this->t, "size"), json(this->t, "is"));
	exit(0);
}
/* output:
clew 42 true

*/
