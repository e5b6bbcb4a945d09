/* SPDX-License-Identifier: Apache-2.0 */
/* A member that is an object is given as text. */
BEGIN
{
	this->t = "{\"a\": {\"b\":1}}";
	printf("%s\n", json(this->t, "a"));
	exit(0);
}
/* output:
{"b":1}

*/
